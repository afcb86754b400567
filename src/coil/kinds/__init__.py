"""One room per kind: observe, plan, act, report, watches."""

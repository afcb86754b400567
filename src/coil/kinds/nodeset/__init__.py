"""Worker pods of one NodeSet."""

"""The webhook: checks custom resources before they are stored, hands a node's topology to worker pods.

| module | what it knows |
|---|---|
| `verdict` | errors and warnings about one object |
| `rules` | rules that several kinds share |
| `overrides` | the members that hold Kubernetes objects: their types, and what of them has no effect |
| `accounting`, `controller`, `loginset`, `nodeset`, `restapi`, `token` | the rules of one kind; pure |
| `facts`, `lookups` | what the rules of Controllers need to know of other objects, and reading it |
| `validation` | a review request in, the answer out |
| `binding` | the webhook on pods/binding |
| `review` | AdmissionReview on the wire |
| `server`, `certificates` | HTTP over TLS; the certificate is read again when it changes |
"""

"""Pure builders: a kind and its inputs give the Kubernetes objects it shall have.

| modules | what for |
|---|---|
| `controller`, `accounting`, `restapi`, `loginset`, `nodeset`, `token` | objects of one kind; start here |
| `slurmconf`, `nodeconf` | text of slurm.conf, argument of slurmd |
| `worker`, `pods`, `service`, `metadata`, `core`, `scripts` | parts of objects |
| `merge`, `typed`, `quantity` | a user's containers and pod specs over the built ones |
| `hashes`, `revision` | what decides that pods are made anew; byte exact |
| `defaults`, `poddefaults`, `patch` | comparing with what the API server holds |
| `advice` | what users should know about an object |

Manifests are plain JSON dicts. A builder never changes what it is given, gives the same for the same, and
raises `coil.build.errors.BuildError` when no valid object can be made.
"""

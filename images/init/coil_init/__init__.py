"""The small init of the Slurm images: starts a daemon, follows it, stops it, ends with its exit code.

Only the standard library of Debian's ``python3-minimal`` is used: there is no ctypes, no shlex and no
asyncio in it.
"""

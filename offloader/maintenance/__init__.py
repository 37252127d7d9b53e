"""Upkeep of the tables: small files compacted, old rows expired, unused files removed.

``files`` what a table consists of · ``choose`` which files are to be replaced (pure) · ``merge``
rows of several files in order · ``rewrite`` files into one · ``vacuum`` what nobody needs any
more · ``clock`` whether it is time · ``tend`` all of it, for one topic · ``lane`` topic by topic,
beside the offloader.

Imports the offloader's writer and commits, never its scheduler.
"""

__all__: list[str] = []

"""Who may see what: paths, certificates, tokens, the page."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
file-outside-of-the-table: who may write a table's log has any file read as rows that readers may
    open
reader/table/file_paths.py: tests/unit/table/test_file_paths.py
- if ".." in _SEPARATOR.split(path):
+ if path == "..":

escaped-path-outside-of-the-table: the same by percent-escapes
reader/table/file_paths.py: tests/unit/table/test_file_paths.py
- if decoded == path:
-             return True
+ if decoded != path:
+             return True

host-name-not-checked: who has any certificate of the same authority reads tokens and messages
reader/tls.py: tests/unit/pulsar/test_tls.py tests/unit/pulsar
- context.check_hostname = verify_hostname
+ context.check_hostname = False

token-to-any-host: a redirect to any host shows it the token
reader/pulsar/http.py: tests/unit/pulsar/test_broker_hosts.py
- if token:
-                     self._require_known(
+ if not token:
+                     self._require_known(

token-in-the-clear: a redirect from TLS to none sends the token in the clear
reader/pulsar/http.py: tests/unit/pulsar/test_redirects.py
- if answer.request.url.scheme == "https" != to.scheme:
+ if answer.request.url.scheme == to.scheme != "https":

secret-in-a-traceback: a traceback in a log shows the token of a wrong settings file
reader/config/loading.py: tests/unit/reader/test_config.py
- raise _explained(error, origin, cls) from None
+ raise _explained(error, origin, cls) from error

secret-in-an-error: an error shows the token of a wrong settings file
reader/config/loading.py: tests/unit/reader/test_config.py
- {where}: {first['msg']}")
+ {where}: {first['msg']} {error.errors()[0].get('input')}")

page-for-any-host: a web page of another site reads the status page (DNS rebinding)
offloader/web/security.py: tests/unit/web/test_api.py
- known = name in self._hosts or name == "localhost"
+ known = bool(name)

page-with-any-token: anybody may order turns and maintenance
offloader/web/security.py: tests/unit/web/test_api.py
- if not hmac.compare_digest(given.strip().encode(), expected.encode()):
+ if len(given.strip()) < 1:

escape-sequences-to-the-terminal: a producer's text steers the terminal of who reads messages or
    logs
reader/printable.py: tests/unit/offloader/test_console.py tests/unit/shell
- _CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\t"), ord("\n")}
+ _CONTROLS = {*range(0x7F, 0xA0)} - {ord("\t"), ord("\n")}

permission-not-asked-for: who may read the storage reads topics that the broker does not let him
    consume
reader/plan/snapshot.py: tests/unit/plan/test_snapshot.py
- if checked:
-         admin.require_consume(topic)
+ if not checked:
+         admin.require_consume(topic)

directory-of-others-believed: who may write to a shared directory decides what count(*) and filters
    give
reader/plan/publish_times.py: tests/unit/plan/test_publish_times.py
- if not self._is_believed():
-             return {}
+ if self._is_believed() is None:
+             return {}
""")

"""Who may see what: paths, certificates, tokens, the page."""

from tests.mutations.mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = (
    Mutation(
        "file-outside-of-the-table",
        "reader/table/file_paths.py",
        'if ".." in _SEPARATOR.split(path):',
        'if path == "..":',
        "who may write a table's log has any file read as rows that readers may open",
        ("tests/unit/table/test_file_paths.py",),
    ),
    Mutation(
        "escaped-path-outside-of-the-table",
        "reader/table/file_paths.py",
        "if decoded == path:\n            return True",
        "if decoded != path:\n            return True",
        "the same by percent-escapes",
        ("tests/unit/table/test_file_paths.py",),
    ),
    Mutation(
        "host-name-not-checked",
        "reader/tls.py",
        "context.check_hostname = verify_hostname",
        "context.check_hostname = False",
        "who has any certificate of the same authority reads tokens and messages",
        ("tests/unit/pulsar/test_tls.py", "tests/unit/pulsar"),
    ),
    Mutation(
        "token-to-any-host",
        "reader/pulsar/http.py",
        "if token:\n                    self._require_known(",
        "if not token:\n                    self._require_known(",
        "a redirect to any host shows it the token",
        ("tests/unit/pulsar/test_broker_hosts.py",),
    ),
    Mutation(
        "token-in-the-clear",
        "reader/pulsar/http.py",
        'if answer.request.url.scheme == "https" != to.scheme:',
        'if answer.request.url.scheme == to.scheme != "https":',
        "a redirect from TLS to none sends the token in the clear",
        ("tests/unit/pulsar/test_redirects.py",),
    ),
    Mutation(
        "secret-in-a-traceback",
        "reader/config/loading.py",
        "raise _explained(error, origin, cls) from None",
        "raise _explained(error, origin, cls) from error",
        "a traceback in a log shows the token of a wrong settings file",
        ("tests/unit/reader/test_config.py",),
    ),
    Mutation(
        "secret-in-an-error",
        "reader/config/loading.py",
        "{where}: {first['msg']}\")",
        "{where}: {first['msg']} {error.errors()[0].get('input')}\")",
        "an error shows the token of a wrong settings file",
        ("tests/unit/reader/test_config.py",),
    ),
    Mutation(
        "page-for-any-host",
        "offloader/web/security.py",
        'known = name in self._hosts or name == "localhost"',
        "known = bool(name)",
        "a web page of another site reads the status page (DNS rebinding)",
        ("tests/unit/web/test_api.py",),
    ),
    Mutation(
        "page-with-any-token",
        "offloader/web/security.py",
        "if not hmac.compare_digest(given.strip().encode(), expected.encode()):",
        "if len(given.strip()) < 1:",
        "anybody may order turns and maintenance",
        ("tests/unit/web/test_api.py",),
    ),
    Mutation(
        "escape-sequences-to-the-terminal",
        "reader/printable.py",
        '_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\\t"), ord("\\n")}',
        '_CONTROLS = {*range(0x7F, 0xA0)} - {ord("\\t"), ord("\\n")}',
        "a producer's text steers the terminal of who reads messages or logs",
        ("tests/unit/offloader/test_console.py", "tests/unit/shell"),
    ),
    Mutation(
        "permission-not-asked-for",
        "reader/plan/snapshot.py",
        "if checked:\n        admin.require_consume(topic)",
        "if not checked:\n        admin.require_consume(topic)",
        "who may read the storage reads topics that the broker does not let him consume",
        ("tests/unit/plan/test_snapshot.py",),
    ),
    Mutation(
        "directory-of-others-believed",
        "reader/plan/publish_times.py",
        "if not self._is_believed():\n            return {}",
        "if self._is_believed() is None:\n            return {}",
        "who may write to a shared directory decides what count(*) and filters give",
        ("tests/unit/plan/test_publish_times.py",),
    ),
)

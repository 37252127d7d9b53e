"""The run of faults knows the storage's errors from bugs, also in a function for foreachBatch."""

import pytest

from tests.faults.queries import is_clear

CALLBACK = """[STREAM_FAILED] Query terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] \
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call \
last):
  File "clientserver.py", line 644, in _call_proxy
"""
RAISED = """py4j.protocol.Py4JJavaError: An error occurred while calling o226.parquet.
: org.apache.spark.SparkException: """
UNREADABLE = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3a://lake/a.parquet"


@pytest.mark.parametrize("before", ["", CALLBACK + RAISED])
def test_a_file_that_spark_cannot_read_is_the_storages_error(before: str) -> None:
    assert is_clear(Exception(before + UNREADABLE))


@pytest.mark.parametrize(
    "text",
    [
        CALLBACK + "ValueError: a bug of the function",
        CALLBACK + RAISED + "Traceback (most recent call last):\nKeyError: 'FAILED_READ_FILE'",
        UNREADABLE + "\nTraceback (most recent call last):\nKeyError: a bug of a worker",
    ],
)
def test_a_traceback_of_python_is_a_bug(text: str) -> None:
    assert not is_clear(Exception(text))

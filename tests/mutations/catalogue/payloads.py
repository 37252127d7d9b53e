"""Schemas, values, names of columns."""

from tests.mutations.mutation import Mutation

_JSON = "tests/unit/payload/json"
_LIVES = "tests/unit/payload/remembered/test_lives.py"

MUTATIONS = (
    Mutation(
        "schema-of-another-life",
        "reader/payload/remembered/lives.py",
        "if any(not one.same_content(definitions[-1]) for one in definitions[:-1]):",
        "if any(not one.same_content(definitions[-1]) for one in definitions[1:-1]):",
        "messages from before a schema was deleted are read by the one that has its number now: "
        "wrong values",
        (_LIVES,),
    ),
    Mutation(
        "schema-lives-by-clocks-that-differ",
        "reader/payload/remembered/lives.py",
        "certainly=newest > 0):",
        "certainly=False):",
        "messages published within pulsar.clock_difference of a new registry have wrong values",
        (_LIVES,),
    ),
    Mutation(
        "life-not-continued",
        "reader/payload/remembered/lives.py",
        "life = max((info.life for info in known), default=0)",
        "life = min((info.life for info in known), default=0)",
        "each listing of a registry that began anew counts as another one",
        (_LIVES, "tests/unit/payload/remembered"),
    ),
    Mutation(
        "clock-difference-in-milliseconds",
        "reader/model/stored_times.py",
        "CLOCK_DIFFERENCE = 1_000_000",
        "CLOCK_DIFFERENCE = 1_000",
        "brokers' clocks that differ by half a second give messages of a deleted schema wrong "
        "values",
        (_LIVES, "tests/unit/payload/remembered", "tests/simulation/test_histories.py"),
    ),
    Mutation(
        "nan-in-json-is-no-number",
        "reader/payload/json/scalars.py",
        "return numbers.SPECIAL.get(value)",
        "return None if value in numbers.SPECIAL else numbers.SPECIAL.get(value)",
        "NaN and Infinity in JSON are NULL with an error",
        (_JSON,),
    ),
    Mutation(
        "quoted-numbers-are-none",
        "reader/payload/json/scalars.py",
        "exact_whole(value) if type(value) is str and numbers.is_number(value) else None",
        "exact_whole(value) if type(value) is str and not numbers.is_number(value) else None",
        "integers in quotes are NULL with an error",
        (_JSON,),
    ),
    Mutation(
        "nearly-equal-doubles-shown",
        "reader/payload/json/numbers.py",
        "return value if number in again else None",
        "return value",
        "numbers of JSON that no double has are shown rounded, without an error",
        (_JSON,),
    ),
    Mutation(
        "default-of-avro-left-out",
        "reader/encode/payload/defaults.py",
        "if name not in record.defaults:\n        return False",
        "if name in record.defaults:\n        return False",
        "a row written without a column has null or an error, and not the field's default",
        ("tests/unit/encode/test_errors.py",),
    ),
    Mutation(
        "years-beyond-9999",
        "reader/payload/primitive.py",
        "return values, good & (values >= FIRST_MICROS) & (values <= LAST_MICROS)",
        "return values, good",
        "a time beyond the year 9999 ends the queries that show it",
        (f"{_JSON}/test_years.py",),
    ),
    Mutation(
        "dates-in-seconds",
        "reader/payload/primitive.py",
        ".astype(np.int64), 1000)\n    return values, good &",
        ".astype(np.int64), 1)\n    return values, good &",
        "DATE and TIMESTAMP are in January 1970",
        ("tests/unit/payload/test_primitive.py",),
    ),
    Mutation(
        "names-of-two-cases-are-two-columns",
        "reader/model/column_names.py",
        "if name.isascii():\n        return name.lower()",
        "if name.isascii():\n        return name",
        "a topic with the fields id and ID cannot be read in Spark at all",
        ("tests/unit/reader/test_column_names.py",),
    ),
    Mutation(
        "free-name-taken-twice",
        "reader/model/column_names.py",
        "        self._next[key] = number\n        self._taken.add(name_key(candidate))\n",
        "        self._next[key] = number\n",
        "two fields share a column: values of the one are shown as the other's",
        ("tests/unit/reader/test_column_names.py",),
    ),
    Mutation(
        "empty-key-is-null",
        "reader/payload/keyvalue.py",
        "starts[some] = np.where(lengths >= 0, at[some] + 4, -1)",
        "starts[some] = np.where(lengths > 0, at[some] + 4, -1)",
        "empty keys and values of a KeyValue are NULL",
        ("tests/unit/payload/test_keyvalue.py",),
    ),
    Mutation(
        "bytes-behind-a-value-dropped",
        "reader/payload/keyvalue.py",
        "late = good & (ends < some.ends)",
        "late = good & (ends > some.ends)",
        "bytes behind an INLINE KeyValue vanish without __error",
        ("tests/unit/payload/test_keyvalue.py",),
    ),
    Mutation(
        "column-of-a-member-without-room",
        "reader/payload/remembered/union.py",
        "if size <= room - used:",
        "if size <= room + used:",
        "a topic has more columns than the bound: planners run out of memory",
        ("tests/unit/payload/remembered/test_origins.py", "tests/unit/payload/remembered"),
    ),
    Mutation(
        "rescued-bytes-not-kept",
        "reader/sources/rows.py",
        "raw.update(zip(unread, payload.values(unread), strict=True))",
        "raw.update(zip(unread[1:], payload.values(unread[1:]), strict=True))",
        "a payload that cannot be read is NULL, and its bytes are in no column",
        ("tests/unit/sources/test_entry_rows.py",),
    ),
)

"""Schemas, values, names of columns."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
schema-of-another-life: messages from before a schema was deleted are read by the one that has its
    number now: wrong values
reader/payload/remembered/lives.py: tests/unit/payload/remembered/test_lives.py
- if any(not one.same_content(definitions[-1]) for one in definitions[:-1]):
+ if any(not one.same_content(definitions[-1]) for one in definitions[1:-1]):

schema-lives-by-clocks-that-differ: messages published within pulsar.clock_difference of a new
    registry have wrong values
reader/payload/remembered/lives.py: tests/unit/payload/remembered/test_lives.py
- certainly=newest > 0):
+ certainly=False):

life-not-continued: each listing of a registry that began anew counts as another one
reader/payload/remembered/lives.py: tests/unit/payload/remembered/test_lives.py
    tests/unit/payload/remembered
- life = max((info.life for info in known), default=0)
+ life = min((info.life for info in known), default=0)

clock-difference-in-milliseconds: brokers' clocks that differ by half a second give messages of a
    deleted schema wrong values
reader/model/stored_times.py: tests/unit/payload/remembered/test_lives.py
    tests/unit/payload/remembered tests/simulation/test_histories.py
- CLOCK_DIFFERENCE = 1_000_000
+ CLOCK_DIFFERENCE = 1_000

nan-in-json-is-no-number: NaN and Infinity in JSON are NULL with an error
reader/payload/json/scalars.py: tests/unit/payload/json
- return numbers.SPECIAL.get(value)
+ return None if value in numbers.SPECIAL else numbers.SPECIAL.get(value)

quoted-numbers-are-none: integers in quotes are NULL with an error
reader/payload/json/scalars.py: tests/unit/payload/json
- exact_whole(value) if type(value) is str and numbers.is_number(value) else None
+ exact_whole(value) if type(value) is str and not numbers.is_number(value) else None

nearly-equal-doubles-shown: numbers of JSON that no double has are shown rounded, without an error
reader/payload/json/numbers.py: tests/unit/payload/json
- return value if number in again else None
+ return value

default-of-avro-left-out: a row written without a column has null or an error, and not the field's
    default
reader/encode/payload/defaults.py: tests/unit/encode/test_errors.py
- if name not in record.defaults:
-         return False
+ if name in record.defaults:
+         return False

years-beyond-9999: a time beyond the year 9999 ends the queries that show it
reader/payload/primitive.py: tests/unit/payload/json/test_years.py
- return values, good & (values >= FIRST_MICROS) & (values <= LAST_MICROS)
+ return values, good

dates-in-seconds: DATE and TIMESTAMP are in January 1970
reader/payload/primitive.py: tests/unit/payload/test_primitive.py
- .astype(np.int64), 1000)
-     return values, good &
+ .astype(np.int64), 1)
+     return values, good &

names-of-two-cases-are-two-columns: a topic with the fields id and ID cannot be read in Spark at all
reader/model/column_names.py: tests/unit/reader/test_column_names.py
- if name.isascii():
-         return name.lower()
+ if name.isascii():
+         return name

free-name-taken-twice: two fields share a column: values of the one are shown as the other's
reader/model/column_names.py: tests/unit/reader/test_column_names.py
-         self._next[key] = number
-         self._taken.add(name_key(candidate))
-
+         self._next[key] = number
+

empty-key-is-null: empty keys and values of a KeyValue are NULL
reader/payload/keyvalue.py: tests/unit/payload/test_keyvalue.py
- starts[some] = np.where(lengths >= 0, at[some] + 4, -1)
+ starts[some] = np.where(lengths > 0, at[some] + 4, -1)

bytes-behind-a-value-dropped: bytes behind an INLINE KeyValue vanish without __error
reader/payload/keyvalue.py: tests/unit/payload/test_keyvalue.py
- late = good & (ends < some.ends)
+ late = good & (ends > some.ends)

column-of-a-member-without-room: a topic has more columns than the bound: planners run out of memory
reader/payload/remembered/union.py: tests/unit/payload/remembered/test_origins.py
    tests/unit/payload/remembered
- if size <= room - used:
+ if size <= room + used:

rescued-bytes-not-kept: a payload that cannot be read is NULL, and its bytes are in no column
reader/sources/rows.py: tests/unit/sources/test_entry_rows.py
- raw.update(zip(unread, payload.values(unread), strict=True))
+ raw.update(zip(unread[1:], payload.values(unread[1:]), strict=True))
""")

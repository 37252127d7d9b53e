"""Avro.

decoder              Avro payloads -> Arrow arrays, by the program of their own schema vers
instructions         The instructions of an Avro program.
kernel               The one compiled loop that runs an Avro program over payloads and fill
program              Avro schemas -> a program for the one kernel of `avro_kernel`.
text                 Avro values that become text: a record inside itself, wide decimals, U
"""

__all__: list[str] = []

"""Protobuf.

decoder              Protobuf payloads -> Arrow arrays, message by message.
schema               PROTOBUF_NATIVE and PROTOBUF definitions -> a message class, and the c
unknown_fields       What a payload holds that its message does not: an independent walk ov
values               One Protobuf payload -> column values.
"""

__all__: list[str] = []

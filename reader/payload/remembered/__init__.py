"""What a topic's columns and schema versions have been, and so what they are now.

    origins        each column's own field and kind, kept in the column's metadata
    union          columns that grow by the fields of one schema version after the other
    union_members  which member of a union's column takes the values of which branch
    conversions    values of one schema version in columns that another has given their type
    lives          which definition a version number means, where the registry has begun anew
    versionless    the version of messages that name none

Columns are assigned once: a union of versions begins with the columns that the table has.
"""

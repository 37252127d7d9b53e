"""Words of Spark SQL that completion offers: those that queries are made of, not all there are."""

# fmt: off
KEYWORDS = (
    "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "ANY", "ARRAY", "AS", "ASC", "BETWEEN", "BIGINT",
    "BINARY", "BOOLEAN", "BY", "CACHE", "CASE", "CAST", "CATALOG", "CATALOGS", "CLEAR", "COLUMNS",
    "CREATE", "CROSS", "CUBE", "CURRENT", "DATABASES", "DATE", "DECIMAL", "DESC", "DESCRIBE",
    "DISTINCT", "DOUBLE", "DROP", "ELSE", "END", "EXCEPT", "EXISTS", "EXPLAIN", "EXTENDED", "FALSE",
    "FIRST", "FLOAT", "FOLLOWING", "FORMATTED", "FROM", "FULL", "FUNCTIONS", "GROUP", "GROUPING",
    "HAVING", "IN", "INNER", "INTERSECT", "INT", "INTERVAL", "IS", "JOIN", "LAST", "LATERAL",
    "LEFT", "LIKE", "LIMIT", "MAP", "MINUS", "NAMESPACES", "NATURAL", "NOT", "NULL", "NULLS", "OF",
    "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION", "PIVOT", "PRECEDING", "RANGE",
    "REPLACE", "RIGHT", "RLIKE", "ROLLUP", "ROW", "ROWS", "SELECT", "SEMI", "SET", "SETS", "SHOW",
    "STRING", "STRUCT", "TABLE", "TABLES", "TABLESAMPLE", "TEMPORARY", "THEN", "TIMESTAMP", "TRUE",
    "UNBOUNDED", "UNCACHE", "UNION", "UNPIVOT", "USE", "USING", "VALUES", "VERSION", "VIEW",
    "VIEWS", "WHEN", "WHERE", "WINDOW", "WITH",
)
# fmt: on
"""Upper case."""

# fmt: off
FUNCTIONS = (
    "abs(", "approx_count_distinct(", "approx_percentile(", "array_contains(", "array_distinct(",
    "avg(", "base64(", "ceil(", "coalesce(", "collect_list(", "collect_set(", "concat(",
    "concat_ws(", "count(", "count_if(", "current_date(", "current_timestamp(", "date_add(",
    "date_diff(", "date_format(", "date_sub(", "date_trunc(", "dayofweek(", "decode(",
    "dense_rank(", "element_at(", "explode(", "extract(", "first(", "floor(", "from_json(",
    "from_unixtime(", "get_json_object(", "greatest(", "hour(", "if(", "ifnull(", "json_tuple(",
    "lag(", "last(", "lead(", "least(", "length(", "lower(", "map_keys(", "map_values(", "max(",
    "max_by(", "md5(", "median(", "min(", "min_by(", "minute(", "month(", "mode(", "nullif(",
    "percentile(", "percentile_approx(", "rank(", "regexp_extract(", "regexp_replace(", "round(",
    "row_number(", "sha2(", "size(", "split(", "stddev(", "substring(", "sum(", "timestamp_micros(",
    "timestamp_millis(", "timestampdiff(", "to_date(", "to_json(", "to_timestamp(", "transform(",
    "trim(", "try_cast(", "unbase64(", "unix_timestamp(", "upper(", "variance(", "window(", "year(",
)
# fmt: on
"""With the bracket that follows."""

"""The planner behind the catalog shim: tables, plans, writes."""

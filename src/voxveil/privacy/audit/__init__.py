"""Privacy accounting, information bounds, and audits of claimed losses."""

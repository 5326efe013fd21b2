"""Results for people: report, comparison, promotion gate, and the wording and HTML they share."""

"""What stands beside the mechanisms: accounting, information bounds, and audits of what is claimed."""

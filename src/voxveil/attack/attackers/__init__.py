"""The attackers: one kind a module, one registry."""

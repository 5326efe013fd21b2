"""The commands: each module has HELP, EPILOG and add_arguments, and a run for it or for each action."""

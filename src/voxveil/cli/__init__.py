"""The commands: each module has HELP, EPILOG, add_arguments and run."""

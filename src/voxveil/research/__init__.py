"""Reproduction of papers: probes, decoding, recognizers, tables and figures. The product never imports it."""

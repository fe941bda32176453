"""English text: words, stems and synonyms, clauses and imperatives, time ranges, constraints, names of things.

Everything here works on plain strings. Nothing knows about tools, agents or conversations.
"""

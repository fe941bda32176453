"""Forms and their answers: the form of an interrupt, the interpretation of replies, and the answer for the graph.

Pure functions over `events.Form`. The codec encodes forms; the graphs decide when one is shown.
"""

"""Forms and their answers: what a person is asked, how a reply is understood, what the graph is told.

Pure functions over `events.Form`. How a form travels is the codec's business, when one is asked the graphs'.
"""

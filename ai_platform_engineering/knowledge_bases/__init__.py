"""Knowledge bases that the supervisor can search. What its model is offered of them is decided by the supervisor."""

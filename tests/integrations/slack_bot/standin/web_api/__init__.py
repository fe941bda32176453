"""The methods of the Web API, one module for each family. A method takes the state and a call, and gives the answer."""

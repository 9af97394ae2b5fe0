"""`advisor mcp`: the advisor as tools for agents, over the Model Context Protocol.

Reads below one folder and never writes. Needs the extra `advisor[mcp]`.
"""

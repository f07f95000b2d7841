"""Whether the tools that a request sends, and the calls that its history holds, are those of the live servers."""

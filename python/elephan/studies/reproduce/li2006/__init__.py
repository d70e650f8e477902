"""Li 2006: transport protocols over high performance networks. One module for each part."""

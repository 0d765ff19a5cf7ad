"""The programs that are measured: each is one client, in a process of its own, told by lines what to do."""

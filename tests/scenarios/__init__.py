"""The redelivery scenarios, each written once and run for {blocking, asyncio} x {memory, TCP}."""

package runtime_test

// memoryRows are plugins that hold more memory than they may.
func memoryRows() []rowCase {
	return []rowCase{
		{row: 16, name: "memory-of-child", long: true, test: rowMemoryOfChild, modes: []string{"memory-child", "filler"}},
		{row: 17, name: "memory", test: rowMemory, modes: []string{"memory"}},
		{row: 17, name: "memory-at-start", long: true, test: rowMemoryAtStart, modes: []string{"memory-start"}},
		{row: 17, name: "killed-near-limit", test: rowKilledNearLimit},
	}
}

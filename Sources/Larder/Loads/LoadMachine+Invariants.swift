extension LoadMachine {
    /// Traps if the parts of the state do not fit together; `graph` holds no loads but the machine's.
    package func checkInvariants(_ graph: LoadGraph) {
        graph.checkInvariants()
        precondition(graph.count == loads.count, "The graph has the loads.")
        for (key, id) in underway {
            precondition(loads[id]?.openKeys.contains(key) == true, "A key that can be joined has no value yet.")
        }
        precondition(asides.allSatisfy { loads[$0] != nil })
        for (id, load) in loads {
            precondition(!load.open.isEmpty, "A load with all its values has ended.")
            precondition(load.isHeld || !load.callers.isEmpty, "A load without callers has ended.")
            precondition(load.callers.allSatisfy { callers[$0]?.load == id }, "A caller waits for its load.")
            precondition(load.aside.isEmpty || asides.contains(id))
            precondition(load.aside.allSatisfy { underway[$0] != id }, "A load is not next to itself.")
            for key in load.storing {
                precondition(racers(key).contains(id), "A load that stores was not overtaken.")
                precondition(racers(key).count { loads[$0]?.storing.contains(key) == true } == 1)
            }
        }
        for (id, caller) in callers {
            precondition(loads[caller.load]?.callers.contains(id) == true && !caller.wants.isEmpty)
        }
    }
}

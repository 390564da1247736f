// The curves, one below the other on one time axis: what each shows, how to read it, its colours.

const line = (key, label, colour = "signal-" + label.toLowerCase().replaceAll(" ", "-")) => ({
  key,
  label,
  colour,
});
const limit = (key, label) => ({ key, label, colour: "limit", dashed: true });

/** Stacks, from the bottom to the top: work, what takes from it, losses, pauses, what is not known. */
const ACCOUNTS = [
  "compute", "throttle", "shared", "copy", "data", "host", "launch", "quota", "comm", "stalled",
  "startup", "checkpoint", "evaluation", "unknown", "free",
];
const PHASES = [
  "forward", "backward", "optimizer", "grad_sync", "sync", "h2d_copy", "d2h_copy", "data_wait",
  "data_inline", "data_sampler", "data_worker_start", "user", "framework", "logging", "gc",
  "checkpoint", "compile", "import", "launcher",
];

/** `timed`: with times at its axis; `tall`: the one that answers; `missing`: said without data. */
export const STRIPS = [
  {
    id: "ledger", group: "accounts", stacked: ACCOUNTS, family: "account", unit: "share",
    range: [0, 1], tall: true, timed: true, title: "Where does the GPU time go?",
    note: "Each second stands in exactly one account. A gap was not observed.",
    missing: "No GPU in sight.",
  },
  {
    id: "activity", group: "signals", unit: "share", range: [0, 1],
    lines: [line("busy", "busy"), line("sm_active", "SM active")],
    title: "Is the GPU busy, and does it work?",
    note: "Busy near 100 % with SM active low is waiting in a collective, or kernels too small.",
    missing: "The driver gave neither.",
  },
  {
    id: "clocks", group: "signals", unit: "share", range: [0, 1.05],
    lines: [line("sm_clock", "SM clock"), line("memory_clock", "memory clock")],
    title: "Do the clocks reach what they can?",
    note: "Share of the attainable clock. Low while idle is saving, not throttling.",
    missing: "The driver gave no clocks or no bounds.",
  },
  {
    id: "power", group: "signals", unit: "watts", range: [0, null],
    lines: [line("power_w", "power"), limit("power_limit_w", "limit in force")],
    title: "How much power, and what is the limit?",
    note: "Power tells work from waiting where utilisation cannot.",
    missing: "The driver gave no power.",
  },
  {
    id: "temperature", group: "signals", unit: "celsius", range: [20, 100],
    lines: [line("temperature_c", "temperature"), limit("slowdown_c", "slows down at")],
    title: "How hot, and where does the card slow down?",
    note: "Hot alone is no fault: the clocks tell.",
    missing: "The driver gave no temperature.",
  },
  {
    id: "memory", group: "signals", unit: "share", range: [0, 1],
    lines: [line("memory_controller", "memory controller")],
    title: "Is device memory being read and written?",
    note: "Time in which it was; neither the memory in use nor a meter of copies.",
    missing: "The driver gave none.",
  },
  {
    id: "pcie", group: "signals", unit: "rate", range: [1e6, 1e11], logarithmic: true, ticks: [1e6, 1e8, 1e10],
    lines: [line("pcie_rx", "to the GPU", "signal-power"), line("pcie_tx", "from the GPU", "signal-sm-active")],
    title: "What travels over PCIe?",
    note: "Logarithmic. Pageable copies fill 3 % of the link and still hold up the step.",
    missing: "The driver gave no traffic (it needs GPM, Hopper and newer).",
  },
  {
    id: "phases", group: "phases", stacked: PHASES, family: "phase", unit: "share", range: [0, 1],
    title: "What does the host do?",
    note: "The rank's main thread. CUDA is asynchronous: these are not the GPU's accounts.",
    missing: "No Python stack was seen.",
  },
  {
    id: "queue", group: "progress", unit: "count", range: [0, null], timed: true,
    lines: [
      line("ready", "batches ready", "account-data"), limit("capacity", "capacity"),
      line("busy_workers", "busy workers", "signal-busy"),
    ],
    title: "Are batches ready?",
    note: "Near 0 the loader is too slow; near capacity it has time to spare. An estimate.",
    missing: "No loader workers in sight.",
  },
];

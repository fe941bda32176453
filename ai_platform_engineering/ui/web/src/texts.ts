// Every text of the page. A translation is another object of this type; functions get the values to insert.

export const TEXTS = {
  title: "Platform Engineer",

  app: {
    menu: "Open the menu",
    closeMenu: "Close the menu",
    skip: "Skip to the conversation",
    themes: { system: "System colors", light: "Light", dark: "Dark" },
    theme: "Colors",
    signOut: "Sign out",
    offlineModel:
      "This is the offline model: it matches words and needs no key. Configure a model provider for real answers.",
    disconnected: "There is no connection to the supervisor. The page reconnects by itself.",
    notSignedIn: "You are not signed in.",
    requestFailed: (status: number) => `The supervisor answered with HTTP status ${status}.`,
    degraded: (reason: string) => `The supervisor works only in part. ${reason}`,
    loading: "Loading…",
    views: {
      chat: "Conversations",
      agents: "Agents",
      workflows: "Workflows",
      skills: "Skills",
      knowledge: "Knowledge base",
      replay: "Replay a recording",
    },
  },

  conversations: {
    list: "Conversations",
    create: "New conversation",
    search: "Search conversations",
    none: "No conversations yet.",
    noneFound: "No conversation matches.",
    more: "Show more",
    rename: "Rename",
    remove: "Delete",
    link: "Copy the link",
    name: "Name of the conversation",
    save: "Save",
    cancel: "Cancel",
    confirmRemoval: (name: string) => `Delete “${name}” with all its tasks? This cannot be undone.`,
    confirmUnfinished: "A run of this conversation has not ended. Stop it and delete the conversation?",
    loading: "Loading the conversation…",
    missing: "There is no such conversation. It may have been deleted.",
    failed: "The conversation could not be loaded. The page tries again.",
    states: {
      submitted: "queued",
      working: "working",
      "input-required": "waits for you",
      "auth-required": "needs authorization",
      completed: "answered",
      failed: "failed",
      canceled: "stopped",
      rejected: "rejected",
    },
    actions: (name: string) => `Actions for “${name}”`,
  },

  notices: {
    answered: "An answer is ready",
    asks: "A run waits for your input",
    failed: "A run has failed",
    problem: "That did not work",
    open: "Open",
    dismiss: "Dismiss",
    region: "Notifications",
  },

  chat: {
    welcome: "What can I do for you?",
    welcomeHint: "Ask in your own words. The plan, every agent and every tool are shown while they work.",
    suggestions: "Suggested questions",
    composer: "Your message",
    placeholder: "Ask about your platform…",
    send: "Send",
    stop: "Stop",
    stopping: "Stopping…",
    retry: "Try again",
    edit: "Edit and send again",
    copy: "Copy",
    copied: "Copied",
    you: "You",
    supervisor: "Supervisor",
    answer: "Answer",
    sending: "Sending…",
    notSent: "The message was not sent.",
    queued: "Waiting for the previous message of this conversation.",
    lost: "The connection was lost. The run continues; the page reconnects.",
    answerRejected: "The answer was not accepted.",
    formClosed: "This form is no longer open.",
    newestBelow: "Go to the newest message",
    log: "Messages of this conversation",
  },

  run: {
    details: "How this was done",
    working: "Working",
    plan: "Plan",
    steps: (done: number, all: number) => `${done} of ${all} steps done`,
    status: { pending: "pending", in_progress: "in progress", completed: "done", failed: "failed" },
    call: {
      running: "running",
      waiting: "waits for you",
      completed: "completed",
      failed: "failed",
      unknown: "outcome unknown",
    },
    narration: "What the supervisor wrote",
    supersededNote: "This text was cut off. It is written again below.",
    limit: (limit: string) => `A limit was reached (${limit}), so the answer uses only the results until then.`,
    cut: "The answer is not complete.",
    failed: "The run failed.",
    partial: "Results until then",
    canceled: (by: string) => (by === "user" ? "The run was stopped." : `The run was stopped by ${by}.`),
    skill: (name: string) => `skill ${name}`,
    sources: "Sources",
    duration: (seconds: number) => (seconds < 0.95 ? `${Math.round(seconds * 1000)} ms` : seconds < 10 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`),
  },

  forms: {
    needed: { approval: "Approval needed", input: "Input needed" },
    untitled: "A few details",
    someTool: "a tool",
    submit: "Submit",
    send: "Send",
    cancel: "Cancel the form…",
    back: "Back",
    sending: "Sending…",
    sent: "Sent. The run continues.",
    nothingToFillIn: "There is nothing to fill in.",
    optional: "optional",
    isRequired: "required",
    yes: "Yes",
    no: "No",
    noAnswer: "No answer",
    choose: "Choose…",
    filter: (label: string) => `Filter the options of ${label}`,
    filterHint: "Type to filter",
    chosen: (options: string) => `Chosen: ${options}`,
    noneChosen: "Nothing is chosen.",
    noMatch: "No option matches.",
    moreOptions: (count: number) => `${count} more. Type to filter them.`,
    linesHint: "One per line, or separated by commas.",
    keepsProposal: "Leave it empty to keep the proposed value.",
    emptyMeansProposal: "Left empty, it gets the proposed value.",
    takesHint: (expected: string) => `It takes ${expected}.`,
    secretHint: "It is not stored in this browser.",
    errors: (count: number) =>
      count === 1 ? "One field needs your attention." : `${count} fields need your attention.`,

    takes: (expected: string, given: string, wrong: string) => `Please enter ${expected}; ${given} ${wrong}.`,
    required: (expected: string) =>
      expected === "text" ? "This field is required." : `This field is required. It takes ${expected}.`,
    wrong: {
      kind: "is not that",
      text: "is not text",
      comma: "is not that. Write decimals with a point",
      length: (length: number) => `has ${length}`,
      pattern: "does not",
      secret: "the value",
    },
    expected: {
      text: "text",
      texts: "texts with commas between them",
      boolean: "yes or no",
      url: "an address that begins with http:// or https://",
      email: "an e-mail address like name@example.com",
      select: (options: string) => `one of ${options}`,
      multiselect: (options: string, required: boolean) => `${required ? "one or more" : "any"} of ${options}`,
      list: (options: readonly string[], more: number) =>
        more > 0 ? `${options.join(", ")} and ${more} more` : options.join(", "),
      number: (whole: boolean, low: string | null, high: string | null) => {
        const kind = whole ? "a whole number" : "a number";
        if (low !== null && high !== null) return `${kind} from ${low} to ${high}`;
        if (low !== null) return `${kind} of at least ${low}`;
        return high === null ? kind : `${kind} of at most ${high}`;
      },
      length: (low: number, high: number | null) => {
        const characters = (count: number) => `${count} ${count === 1 ? "character" : "characters"}`;
        if (high === null) return low > 0 ? ` of at least ${characters(low)}` : "";
        return low > 0 ? ` of ${low} to ${characters(high)}` : ` of at most ${characters(high)}`;
      },
      pattern: (pattern: string) => ` that matches the pattern ${pattern}`,
    },

    cancelTitle: "Cancel this form",
    cancelHint: "The agent learns that you do not want to answer.",
    cancelReason: "Why? (optional)",
    confirmCancel: "Cancel the form",

    call: (agent: string, tool: string) => `${agent} wants to call ${tool}`,
    wants: "wants to call",
    effects: {
      read: "Only reads",
      write: "Changes something",
      destructive: "Destructive: can delete or overwrite",
    },
    noArguments: "The call has no arguments.",
    argumentsOf: (tool: string) => `Arguments of ${tool}`,
    showAll: "Show all",
    showLess: "Show less",
    partHint: "The supervisor shows only a part of this value.",
    severalCalls: (count: number) => `One decision is for all ${count} calls.`,
    approve: "Approve",
    always: "Approve for this conversation…",
    edit: "Edit…",
    reject: "Reject…",
    alwaysTitle: "Approve, and do not ask again in this conversation",
    confirmAlways: "Approve for this conversation",
    permission: (
      agent: string,
      tool: string,
      given: readonly string[],
      missing: readonly string[],
      effect: "read" | "write" | "destructive" | null,
    ) => {
      const parts = [
        given.length > 0 ? `with ${given.join(", ")}` : "",
        missing.length > 0 ? `without ${missing.join(", ")}` : "",
      ].filter((part) => part !== "");
      const limit = { read: ", as long as it only reads", write: ", unless the call is destructive", destructive: "" };
      return (
        `${agent} may call ${tool} ${parts.join(" ") || "with any arguments"}, whatever else is in the call, ` +
        `until this conversation ends${effect === null ? "" : limit[effect]}.`
      );
    },
    editTitle: "Change the arguments",
    editHint: "Arguments that you do not change stay as they are. Nothing is called before you approve.",
    confirmEdit: "Approve with changes",
    was: "Before:",
    keepsArgument: "Leave it empty to keep the value.",
    nothingChanged: "Nothing was changed. To approve the call as it is, go back and choose Approve.",
    notJson: (example: string) => `Please enter JSON, for example ${example.length > 80 ? "null" : example}.`,
    tooManyDigits: (number: string) => `${number} has more digits than can be sent.`,
    shownInPart: "Only a part of this value is shown. Replace the whole value, or leave it as it was.",
    rejectTitle: "Reject the call",
    rejectReason: "Why? The agent gets the reason. (optional)",
    confirmReject: "Reject",

    decisions: "Decisions",
    by: (person: string) => ` by ${person}`,
    decided: {
      values: "Answered",
      text: "Answered with a message",
      approve: "Approved",
      always: "Approved for this conversation",
      edit: "Edited and approved",
      reject: "Rejected",
      cancel: "Canceled",
    },
    because: (reason: string) => `: ${reason}`,
    changedTo: "to",
    asProposed: "As proposed.",
    emptyValue: "empty",
  },

  markdown: {
    code: (language: string) => `Code, ${language}`,
    plainCode: "text",
    table: "Table",
    taskDone: "done",
    taskOpen: "open",
    rows: (shown: number, all: number) => `The first ${shown} of ${all} rows.`,
    cut: (length: number) => `This text is very long (${length.toLocaleString("en")} characters). This is its beginning.`,
    showAll: "Show all as plain text",
    showFormatted: "Show the beginning, formatted",
    diagram: (kind: string) => `Diagram (${kind})`,
    diagramKind: "mermaid",
    diagramSource: "Show the source",
    diagramPicture: "Show the diagram",
    diagramFailed: "This diagram could not be drawn. This is its source.",
  },

  /** Shared by the views beside the chat. */
  views: {
    refresh: "Refresh",
    retry: "Try again",
    search: "Search",
    pages: "Pages",
    previous: "Previous",
    next: "Next",
  },

  agents: {
    title: "Agents",
    hint: "The agents that the supervisor delegates to, where each runs, and what each can do.",
    model: "Model",
    offline: "offline model",
    offlineExplained:
      "The offline model answers. It is part of the product, matches words and needs no key. It selects agents and " +
      "tools, but it does not understand what you mean. Configure a model provider for real answers.",
    modelUsed: (name: string, provider: string) => `${name} answers. Its provider is ${provider}.`,
    configureModel: "Configure a model",
    provider: "Provider",
    setLines: "Write these lines with your values into the file .env, and restart the supervisor.",
    settingsOf: (what: string) => `Settings for ${what}`,
    extra: "This provider needs one more package. Install it with:",
    extraCommand: "Install the package",
    none: "There are no agents.",
    filter: "Filter agents and tools",
    noneFound: "No agent and no tool matches.",
    enabled: "Enabled",
    disabled: "Not enabled",
    off: "off",
    placement: { "in-process": "in-process", remote: "remote" },
    reachable: "reachable",
    unreachable: "not reachable",
    notChecked: "not checked yet",
    sandbox: "sandbox",
    realBackend: "real backend",
    examples: (title: string) => `Questions for ${title}`,
    missing: (count: number) =>
      count === 1 ? "The real backend needs 1 more setting" : `The real backend needs ${count} more settings`,
    tools: (shown: number, all: number) => (shown === all ? `Tools (${all})` : `Tools (${shown} of ${all})`),
    effects: { readOnly: "read-only", changes: "changes data", destructive: "destructive" },
  },

  workflows: {
    title: "Workflows",
    hint: "Procedures with fixed steps. A workflow asks for its inputs first and does nothing before you submit them.",
    none: "There are no workflows. Put YAML files into the directory WORKFLOWS_DIR.",
    off: "off",
    reason: (reason: string) => `It cannot be started: ${reason}.`,
    start: (title: string) => `Start ${title}`,
    steps: (count: number) => `Steps (${count})`,
    when: (condition: string) => `if ${condition}`,
    inputs: (count: number) => `Inputs (${count})`,
    required: "required",
    optional: "optional",
    default: (value: string) => `default: ${value}`,
    options: (options: string) => `One of: ${options}.`,
  },

  skills: {
    title: "Skills",
    hint: "Instructions for recurring work. The supervisor reads a skill when a request needs it.",
    search: "Search skills",
    none: "There are no skills.",
    noneFound: "No skill matches.",
    shown: (first: number, last: number, total: number) => `Skills ${first} to ${last} of ${total}`,
    back: "All skills",
    subject: "Subject, for example the name of a service",
    use: "Use this skill",
    sources: { "built-in": "built-in", directory: "directory", git: "Git", api: "API" },
    visibility: {
      global: () => "for everyone",
      team: (team: string) => `team ${team}`,
      personal: () => "personal",
    },
    origin: "Origin",
    added: "Added",
    updated: "Changed",
    license: "License",
    compatibility: "Compatibility",
    overrides: (source: string) => `Overrides a skill (${source})`,
  },

  knowledge: {
    title: "Knowledge base",
    hint: "The documents that the supervisor searches. Answers name them as their sources.",
    external:
      "The knowledge base runs on a server of its own (RAG_SERVER_URL). Search it by asking in a conversation; that " +
      "server's REST API and the command platform-engineer rag show its documents.",
    disabled: "The knowledge base is disabled (ENABLE_RAG=false).",
    search: "Search the documents",
    searchIn: "Search in",
    allSources: "all sources",
    results: "Search results",
    found: (count: number) =>
      count === 0 ? "No document matches." : count === 1 ? "1 passage, the best first" : `${count} passages, the best first`,
    score: (score: number) => `score ${score.toFixed(2)}`,
    sources: (count: number) => `Sources (${count})`,
    counts: (documents: number, chunks: number) =>
      `${documents} ${documents === 1 ? "document" : "documents"} in ${chunks} ${chunks === 1 ? "chunk" : "chunks"}`,
    updated: (age: string) => `updated ${age}`,
    none: "There are no documents yet. Ingest a folder, a file, a web page or a sitemap on the supervisor's machine:",
    addDocuments: "Add documents",
    ingest: "Ingest a folder, a file, a web page or a sitemap on the supervisor's machine:",
    ingestCommands: "Commands that ingest documents",
    back: "Back to the search",
  },

  timeline: {
    title: "Timeline",
    columns: ["Call", "Agent", "State", "Start", "Duration"],
    summary: (seconds: number) => `Timeline of ${spokenTime(seconds)}.`,
    row: (name: string, start: number, end: number, state: string) =>
      `${name}: from ${spokenTime(start)} to ${spokenTime(end)}, ${state}.`,
    more: (count: number) => `And ${count} more.`,
    parallel: (names: readonly string[]) => `${new Intl.ListFormat("en").format(names)} worked in parallel.`,
    parallelCalls: (name: string) => `${name} worked on several things in parallel.`,
    hidden: (count: number) => `${count} more calls are not in the picture.`,
    time: (seconds: number) => {
      if (seconds < 120) return `${seconds} s`;
      return seconds < 7200 ? `${Number((seconds / 60).toFixed(1))} min` : `${Number((seconds / 3600).toFixed(1))} h`;
    },
  },

  developer: {},

  feedback: {
    label: "Feedback on this answer",
    up: "Good answer",
    down: "Bad answer",
    stored: "Feedback stored. Thank you.",
    failed: (sentence: string) => `The feedback was not stored. ${sentence}`,
    why: "What was wrong?",
    reasons: ["Incorrect", "Incomplete", "Did not do what I asked", "Wrong agent or tool", "Too slow"],
    comment: "Comment",
    send: "Send feedback",
    cancel: "Cancel",
  },

  session: {
    key: "Key of the supervisor",
    hint: "This supervisor requires a key. Its operator has it (A2A_AUTH_SHARED_KEY).",
    signIn: "Sign in",
    signingIn: "Signing in…",
    missing: "Enter the key.",
    wrong: "The key is not correct.",
    notAvailable:
      "This supervisor accepts access tokens of an OAuth2 issuer only. Signing in with a browser is not available for " +
      "them yet.",
    terminal: "Use the terminal, with the settings of the issuer:",
    command: (address: string) => `platform-engineer chat --url ${address}`,
  },
};

export type Texts = typeof TEXTS;

function spokenTime(seconds: number): string {
  return seconds < 120 ? `${seconds.toFixed(1)} seconds` : `${Math.round(seconds / 60)} minutes`;
}

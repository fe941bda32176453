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
    duration: (seconds: number) => (seconds < 10 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`),
  },

  forms: {},

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

  agents: {},

  workflows: {},

  skills: {},

  knowledge: {},

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

  feedback: {},

  session: {
    key: "Key of the supervisor",
    hint: "This supervisor requires a key. Its operator has it (A2A_AUTH_SHARED_KEY).",
    signIn: "Sign in",
    signingIn: "Signing in…",
    missing: "Enter the key.",
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

// Plays a recording that a person drops or chooses. The file stays in the page: nothing is sent to the supervisor.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Store } from "../store";
import { TEXTS } from "../texts";
import { decodeRecording, MAX_BYTES, RecordingError } from "./lines";
import { Player } from "./player";
import { PlayerControls } from "./PlayerControls";
import { ReplayedTurn } from "./ReplayedTurn";

interface Loaded {
  name: string;
  player: Player;
}

export function ReplayView(_: { store: Store }) {
  const loaded = useSignal<Loaded | null>(null);
  const problem = useSignal("");
  const isOver = useSignal(false);
  useEffect(() => () => loaded.value?.player.pause(), []);
  const load = async (file: File | null | undefined) => {
    if (!file) return;
    loaded.value?.player.pause();
    loaded.value = null;
    problem.value = "";
    try {
      const player = new Player(await linesOf(file));
      loaded.value = { name: file.name, player };
      player.play();
    } catch (error) {
      problem.value = error instanceof RecordingError ? error.message : TEXTS.developer.unreadable;
    }
  };
  const onDrag = (event: DragEvent, over: boolean) => {
    event.preventDefault();
    isOver.value = over;
  };
  return (
    <div
      class={isOver.value ? "replay drop-over" : "replay"}
      onDragOver={(event) => onDrag(event, true)}
      onDragLeave={(event) => onDrag(event, false)}
      onDrop={(event) => {
        onDrag(event, false);
        void load(event.dataTransfer?.files[0]);
      }}
    >
      <div class="replay-top">
        <h2>{TEXTS.developer.replay}</h2>
        <label class="drop-zone">
          <span>{TEXTS.developer.choose}</span>
          <input
            type="file"
            accept=".jsonl,.ndjson,.json,.txt"
            onChange={({ currentTarget }) => {
              void load(currentTarget.files?.[0]);
              // The same file can be chosen again.
              currentTarget.value = "";
            }}
          />
        </label>
        {problem.value && <p class="problem" role="alert">{problem.value}</p>}
      </div>
      {loaded.value && <Recording loaded={loaded.value} />}
    </div>
  );
}

function Recording({ loaded: { name, player } }: { loaded: Loaded }) {
  return (
    <>
      <PlayerControls name={name} player={player} />
      <div class="turns-scroll" tabIndex={0} role="region" aria-label={TEXTS.developer.played(name)}>
        <div class="turns">
          {player.turns.value.map((_, place) => (
            <ReplayedTurn key={place} player={player} place={place} />
          ))}
        </div>
      </div>
    </>
  );
}

async function linesOf(file: File) {
  if (file.size > MAX_BYTES) throw new RecordingError(TEXTS.developer.tooLarge(MAX_BYTES / 1_000_000));
  return decodeRecording(await file.text());
}

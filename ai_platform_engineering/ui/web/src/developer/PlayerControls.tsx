// Play, pause, speed and position of a recording.

import { TEXTS } from "../texts";
import { SPEEDS, type Player } from "./player";

export function PlayerControls({ name, player }: { name: string; player: Player }) {
  const playing = player.playing.value;
  return (
    <div class="player" role="group" aria-label={TEXTS.developer.controls(name)}>
      <button type="button" class="button primary" onClick={() => (playing ? player.pause() : player.play())}>
        {playing ? TEXTS.developer.pause : TEXTS.developer.play}
      </button>
      <label>
        <span class="visually-hidden">{TEXTS.developer.speed}</span>
        <select
          class="input"
          value={player.speed.value}
          onChange={({ currentTarget }) => (player.speed.value = Number(currentTarget.value))}
        >
          {SPEEDS.map((speed) => (
            <option key={speed} value={speed}>{TEXTS.developer.times(speed)}</option>
          ))}
        </select>
      </label>
      <button type="button" class="button" onClick={() => player.finish()}>{TEXTS.developer.instant}</button>
      <label class="seek">
        <span class="visually-hidden">{TEXTS.developer.position}</span>
        <input
          type="range"
          min={0}
          max={player.duration}
          step="any"
          value={player.position.value}
          aria-valuetext={TEXTS.developer.at(player.position.value, player.duration)}
          onInput={({ currentTarget }) => player.seek(Number(currentTarget.value))}
        />
      </label>
      <span class="soft player-time">{TEXTS.developer.at(player.position.value, player.duration)}</span>
    </div>
  );
}

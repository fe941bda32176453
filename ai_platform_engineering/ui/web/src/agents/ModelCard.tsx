// Which model answers, and how to configure a real one while it is the offline model.

import { useSignal } from "@preact/signals";

import type { About } from "../api";
import { Fold } from "../controls/Fold";
import { SettingLines } from "../controls/SettingLines";
import { TEXTS } from "../texts";
import { EXTRAS, PROVIDERS } from "./providers";

export function ModelCard({ about }: { about: About }) {
  const { provider, name, offline } = about.model;
  return (
    <section class="card model" aria-label={TEXTS.agents.model}>
      <h3 class="entry-title">
        {TEXTS.agents.model}{" "}
        <span class={offline ? "badge wait" : "badge good"}>{offline ? TEXTS.agents.offline : provider}</span>
      </h3>
      <p>{offline ? TEXTS.agents.offlineExplained : TEXTS.agents.modelUsed(name, provider)}</p>
      {offline && (
        <Fold summary={TEXTS.agents.configureModel}>
          <ProviderSettings />
        </Fold>
      )}
    </section>
  );
}

function ProviderSettings() {
  const provider = useSignal("openai");
  const extra = EXTRAS[provider.value];
  const lines = [`LLM_PROVIDER=${provider.value}`, ...(PROVIDERS[provider.value] ?? []).map((name) => `${name}=`)];
  return (
    <div class="fold-body">
      <label class="labeled">
        {TEXTS.agents.provider}
        <select
          class="input"
          value={provider.value}
          onChange={(event) => (provider.value = event.currentTarget.value)}
        >
          {Object.keys(PROVIDERS).map((known) => (
            <option key={known} value={known}>{known}</option>
          ))}
        </select>
      </label>
      <p>{TEXTS.agents.setLines}</p>
      <SettingLines lines={lines} label={TEXTS.agents.settingsOf(provider.value)} />
      {extra && (
        <>
          <p>{TEXTS.agents.extra}</p>
          <SettingLines lines={[`make setup EXTRAS=${extra}`]} label={TEXTS.agents.extraCommand} />
        </>
      )}
    </div>
  );
}

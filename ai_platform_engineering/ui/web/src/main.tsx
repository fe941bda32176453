import { render } from "preact";

import { App } from "./app/App";
import { createStore } from "./state/page_store";

const root = document.getElementById("page");
if (root) render(<App store={createStore()} />, root);

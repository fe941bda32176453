import { render } from "preact";

import { TEXTS } from "./texts";

const root = document.getElementById("page");
if (root) render(<h1>{TEXTS.title}</h1>, root);

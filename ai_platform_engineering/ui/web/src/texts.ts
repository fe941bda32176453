// Every text of the page. A translation is another object of this type.

export const TEXTS = {
  title: "Platform Engineer",
};

export type Texts = typeof TEXTS;

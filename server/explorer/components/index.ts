/** What views are built from. */
export { Badge, type Tone } from "./Badge.js";
export { Card } from "./Card.js";
export { CardPaging } from "./CardPaging.js";
export { copyText } from "./clipboard.js";
export { colourOf, whenColoursChange } from "./colours.js";
export { saveFile, saveJson } from "./download.js";
export { EntryList } from "./EntryList.js";
export { DOCUMENT_MEMBERS, EVENT_TYPES, eventLabel, eventSubject, KEY_MEMBERS } from "./events.js";
export { type Fact, Facts } from "./Facts.js";
export { Hash, shortened } from "./Hash.js";
export { Heading } from "./Heading.js";
export * from "./icons.js";
export { Paging } from "./Paging.js";
export { Scroll } from "./Scroll.js";
export { Countdown, Empty, Loading, Problem, TaskView } from "./states.js";
export { ageOf, Time, useNow } from "./Time.js";
export { Verdict } from "./Verdict.js";

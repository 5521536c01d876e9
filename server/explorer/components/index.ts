/** The components from which views are built. */

export { copyText } from "../browser/clipboard.js";
export { saveFile, saveJson } from "../browser/download.js";
export { colourOf, whenColoursChange } from "../look/colours.js";
export * from "../look/icons.js";
export { Countdown, Empty, Loading, Problem, TaskView } from "../look/states.js";
export { Badge, type Tone } from "./Badge.js";
export { Card } from "./Card.js";
export { Check } from "./Check.js";
export { Choice } from "./Choice.js";
export { EntryList } from "./entries/EntryList.js";
export { eventLabel, kindsNamed } from "./entries/events.js";
export { Digits, KeyName } from "./entries/KeyName.js";
export { Said } from "./entries/Said.js";
export { Statement } from "./entries/Statement.js";
export { type Fact, Facts } from "./Facts.js";
export { Hash, shortened } from "./Hash.js";
export { Heading } from "./Heading.js";
export { KeyList } from "./keys/KeyList.js";
export { EndorsementBadge, KEY_STATUSES, KeyStatusBadge, spoken, whoseName } from "./keys/status.js";
export { CardPaging } from "./paging/CardPaging.js";
export { Paging } from "./paging/Paging.js";
export { Scroll } from "./Scroll.js";
export { ageOf, Time, useNow } from "./Time.js";
export { FailedVerdict, type Finding, isMisbehaviour, Verdict } from "./Verdict.js";

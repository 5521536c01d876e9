/** The components from which views are built. */

export { colourOf, whenColoursChange } from "../look/colours.js";
export * from "../look/icons.js";
export { Badge, type Tone } from "./Badge.js";
export { Card } from "./Card.js";
export { CardPaging } from "./CardPaging.js";
export { Check } from "./Check.js";
export { Choice } from "./Choice.js";
export { copyText } from "./clipboard.js";
export { saveFile, saveJson } from "./download.js";
export { EntryList } from "./EntryList.js";
export { eventLabel, kindsNamed } from "./events.js";
export { type Fact, Facts } from "./Facts.js";
export { ForeignText } from "./ForeignText.js";
export { Hash, shortened } from "./Hash.js";
export { Heading } from "./Heading.js";
export { KeyList } from "./KeyList.js";
export { Digits, KeyName } from "./KeyName.js";
export { Paging } from "./Paging.js";
export { Scroll } from "./Scroll.js";
export { RecordedOn, StatementText as Statement } from "./Statement.js";
export { Countdown, Empty, Loading, ProblemNote, TaskView } from "./states.js";
export { EndorsementBadge, KEY_STATUSES, KeyStatusBadge, spoken, whoseName } from "./status.js";
export { ageOf, Time, useNow } from "./Time.js";
export { type CheckState, FailedVerdict, isMisbehaviour, Verdict } from "./Verdict.js";

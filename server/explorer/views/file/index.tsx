/** The view of a file: its attestations in the log, and signing it. Only its hash is sent to the service. */
import { FileView } from "./FileView.js";
import { SignCard } from "./SignCard.js";

export default () => <FileView SignCard={SignCard} />;

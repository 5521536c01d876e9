/** A choice between a few values, or any. */
import { useId } from "preact/hooks";
import { spoken } from "./status.js";

interface ChoiceProps {
  readonly label: string;
  readonly values: readonly string[];
  /** Empty for any. */
  readonly value: string;
  change(value: string): void;
}

export function Choice({ label, values, value, change }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} class="input" value={value} onChange={(event) => change(event.currentTarget.value)}>
        <option value="">any</option>
        {values.map((each) => (
          <option key={each} value={each}>
            {spoken(each)}
          </option>
        ))}
      </select>
    </div>
  );
}

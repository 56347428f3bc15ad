import type { ComponentChildren } from 'preact';

/** What an input with the role of a combobox is given, for the list below it. */
export const comboProps = (id: string, isShown: boolean, at: number) => ({
  role: 'combobox' as const,
  'aria-expanded': isShown,
  'aria-controls': `${id}-list`,
  'aria-autocomplete': 'list' as const,
  autocomplete: 'off' as const,
  ...(isShown && at >= 0 && { 'aria-activedescendant': `${id}-${at}` }),
});

/** The list below a combobox; a press chooses before the input loses the focus. */
export function Suggestions({
  id,
  label,
  items,
  at,
  onChoose,
}: {
  id: string;
  label: string;
  items: readonly { key: string; shown: ComponentChildren }[];
  /** The one that the arrows have reached; -1 for none. */
  at: number;
  onChoose: (index: number) => void;
}) {
  return (
    <ul class="suggested" role="listbox" id={`${id}-list`} aria-label={label}>
      {items.map(({ key, shown }, index) => (
        <li
          key={key}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === at}
          onMouseDown={(event) => {
            event.preventDefault();
            onChoose(index);
          }}
        >
          {shown}
        </li>
      ))}
    </ul>
  );
}

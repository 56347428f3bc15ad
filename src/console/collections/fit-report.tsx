import type { ApiSchemas } from '../api-routes.js';
import { howMany, number } from '../format.js';

/** How many stored documents would not be let in as they are. */
export function Fit({ checked, misfits, examples }: ApiSchemas['FitReport']) {
  return (
    <section role="status">
      <p class={misfits > 0 ? 'bad' : 'good'}>
        {misfits === 0
          ? checked === 0
            ? 'No document is stored that would not fit.'
            : `All of ${howMany(checked, 'stored document')} fit.`
          : `${number(misfits)} of ${howMany(checked, 'stored document')} would not fit: they stay, and are refused when somebody changes them.`}
      </p>
      {examples.length > 0 && (
        <ul>
          {examples.map(({ id, message }) => (
            <li key={id}>
              <code>{id}</code> {message}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

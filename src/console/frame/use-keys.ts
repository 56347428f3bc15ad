import { useEffect } from 'preact/hooks';
import { say } from '../parts/basics.js';
import { isTyping } from '../parts/table.js';
import { goTo } from '../routes.js';
import { menuProject } from '../session.js';
import { isFinding } from './palette.js';
import { linkToScreen, SCREENS } from './screens.js';

/** Ctrl-K finds, `/` goes to the search of a screen, `g` and a letter to another screen, `?` names the keys. */
export function useKeys(): void {
  useEffect(() => {
    let going = false;
    const press = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k' && !document.querySelector('dialog[open]')) {
        event.preventDefault();
        isFinding.value = true;
        return;
      }
      if (isTyping(event) || document.querySelector('dialog[open]')) return;
      if (going) {
        going = false;
        const shown = menuProject.value?.id;
        const screen = SCREENS.find(({ key }) => key === event.key);
        if (screen && (!screen.ofProject || shown)) goTo(linkToScreen(screen, shown ?? ''));
      } else if (event.key === 'g') {
        going = true;
      } else if (event.key === '/') {
        event.preventDefault();
        document.querySelector<HTMLElement>('main [data-search]')?.focus();
      } else if (event.key === '?') {
        const screens = SCREENS.map(({ key, name }) => `${key} ${name}`).join(', ');
        say(`Ctrl K finds anything · / search · j k rows · Enter opens · g and ${screens}`);
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

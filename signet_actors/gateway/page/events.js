// A value that changes outside of the components, which an event of the window tells them.
import { useEffect, useState } from "./preact.js";

export function useEvent(name, read) {
  const [value, setValue] = useState(read);
  useEffect(() => {
    const changed = () => setValue(read());
    addEventListener(name, changed);
    return () => removeEventListener(name, changed);
  }, []);
  return value;
}

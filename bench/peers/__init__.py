"""Other tools, each as its own documentation says it is used; one file a tool, a row in `contest.TOOLS`.

A module tells what is measured (NAME, VERSION, LICENCE, HOW: the commands and what of them could not be had here;
MINILM where it needs the model of bench/models) and

    install(place)                             puts the tool into a folder of its own; nothing of it reaches khms
    python(place)                              the Python that runs bench/driver.py for it
    environment(place, state)                  what its processes find set, besides a HOME of their own
    opened(documents, state, place, mode)      indexes a folder of Markdown files, returns what answers a question
                                               with the files' names or paths, best first, ten where there are so many
    command(place, state, documents, question, mode)
                                               one question as a person types it; opened() has run before
    closing(documents)                         what ends that which questions left running, nothing where they did not

`opened` runs in the tool's own environment, where bench cannot be imported: modules here import the standard library
only, the tool itself inside of functions.
"""
